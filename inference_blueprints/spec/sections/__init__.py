"""The sections of a blueprint: each folder holds the keys of a subject and the rules on them."""
