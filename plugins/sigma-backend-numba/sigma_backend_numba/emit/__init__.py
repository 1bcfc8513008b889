"""Write the text of a program: one function for each task, and the burst that calls them."""
