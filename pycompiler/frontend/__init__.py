"""From Python to graphs: torch's exporter, and the reader of ONNX models."""
