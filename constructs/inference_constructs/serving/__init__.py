"""What a served model needs of AWS: its route and its rights."""
