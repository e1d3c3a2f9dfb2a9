"""The capacity shift: a function that runs each minute, decides by `decide`, and carries the decision out."""
