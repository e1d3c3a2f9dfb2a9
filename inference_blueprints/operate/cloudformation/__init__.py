"""Runs the AWS CDK command line and reads the platform's CloudFormation stacks."""
