"""Series: times as regular steps, and windows over rows that follow each other."""
