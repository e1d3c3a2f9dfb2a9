"""The decisions of KEDA and the HorizontalPodAutoscaler as functions, and a simulator of elastic workers."""
