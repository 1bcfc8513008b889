"""From what a reader returned to sections."""
