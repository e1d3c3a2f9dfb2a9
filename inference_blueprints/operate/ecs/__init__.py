"""Commands on a platform that runs on Amazon ECS."""
