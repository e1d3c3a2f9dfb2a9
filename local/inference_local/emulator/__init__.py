"""The AWS emulator: real `cdk bootstrap` and `cdk deploy` without an account."""
