"""The serving plan on Amazon EKS: values of our charts and of third-party charts, and schemas of ours."""
