"""A host program in Python, by ctypes. LIBRARY is the path of libmnc2.so."""

import ctypes
import os
from ctypes import c_int, c_size_t, c_uint, c_uint64, c_void_p

library = ctypes.CDLL(os.environ.get("LIBRARY", "libmnc2.so"))
transfer = [c_void_p, c_void_p, c_uint64, c_size_t, c_uint]
for name, result, arguments in (
    ("mnc2_open", c_void_p, [c_int]),
    ("mnc2_close", None, [c_void_p]),
    ("mnc2_load_kernel", c_void_p, [c_void_p, ctypes.c_char_p]),
    ("mnc2_exec_kernel", c_int, [c_void_p]),
    ("mnc2_free_kernel", None, [c_void_p]),
    ("mnc2_send", c_int, transfer),
    ("mnc2_recv", c_int, transfer),
):
    function = getattr(library, name)
    function.restype, function.argtypes = result, arguments

device = library.mnc2_open(0)
kernel = library.mnc2_load_kernel(device, b"_build/copy.idma.dat")
data, out = (c_uint64 * 64)(*range(64)), (c_uint64 * 64)()
codes = [
    library.mnc2_send(device, data, 0, 512, 0x10),
    library.mnc2_exec_kernel(kernel),
    library.mnc2_recv(device, out, 512, 512, 0x1E),
]
library.mnc2_free_kernel(kernel)
library.mnc2_close(device)
print("PASS" if codes == [0, 0, 0] and list(out) == list(range(64)) else "FAIL")
