"""EKS clusters that are real Kubernetes API servers, reached by CDK's own handler with real helm and kubectl.

Each module closes one gap of the emulator and says which.
"""

#: Resource types that are stubbed without a control plane and made with one.
MADE_TYPES = frozenset({"AWS::EKS::AccessEntry"})
