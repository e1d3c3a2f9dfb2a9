"""Keeps the files of a certificate as its secret has them."""
