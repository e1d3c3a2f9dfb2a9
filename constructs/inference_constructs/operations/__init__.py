"""Operations: what the controllers of a platform share, and GPU health."""
