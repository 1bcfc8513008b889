"""Commands: their types, their queue, and the changes of components that they make."""
