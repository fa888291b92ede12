"""What a model costs on machines that differ in a few numbers; the command ``sweep``."""
