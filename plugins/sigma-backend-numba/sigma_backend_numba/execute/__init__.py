"""Run compiled programs: bind arrays to addresses, and share the work among threads."""
