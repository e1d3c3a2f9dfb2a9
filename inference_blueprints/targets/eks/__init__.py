"""The serving plan on Amazon EKS: values of our charts and of those from registries, and schemas of ours."""
