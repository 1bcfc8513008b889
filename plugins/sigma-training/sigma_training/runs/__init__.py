"""Run folders: create and lock them, resume and replay from them, and summarise them."""
