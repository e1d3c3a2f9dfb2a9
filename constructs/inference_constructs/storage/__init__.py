"""Keys and buckets."""
