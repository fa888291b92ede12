"""The SDK for host programs in C and C++: ``emu2 sdk install`` and ``emu2 cc``."""
