"""Run folders: their files, resume, compatibility, and the summary."""
