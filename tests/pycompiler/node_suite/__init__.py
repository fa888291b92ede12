"""ONNX's own node tests, run through the compiler, with a page of the results."""
