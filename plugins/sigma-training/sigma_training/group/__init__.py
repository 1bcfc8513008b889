"""Workers of a run: which of them are members, what each computes, and when a burst counts; without clock or thread."""
