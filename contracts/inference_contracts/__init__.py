"""Values that the library, the CDK constructs and the programs in `runtime/` share.

Each is defined only here.

This package ships with the Lambda functions and with the image of the batch workers, so it imports only the
standard library; `prompt_template` also imports Jinja2, which both contain.
"""
