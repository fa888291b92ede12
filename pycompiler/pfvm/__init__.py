"""ONNX on the host: passes over models, and the CPU runtime."""
