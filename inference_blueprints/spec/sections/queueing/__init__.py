"""Job queues on the pools."""
