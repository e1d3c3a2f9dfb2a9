"""The API of ECS, in the shapes that botocore knows."""
