"""Makes EKS clusters real Kubernetes API servers, which CDK's handler uses with real helm and kubectl.

Each module closes one gap of the emulator.
"""

#: Resource types that are created with a control plane, and stubbed without one.
MADE_TYPES = frozenset({"AWS::EKS::AccessEntry"})
