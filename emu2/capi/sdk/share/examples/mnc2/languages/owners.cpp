// The C++ header: owners and exceptions.
#include <mnc2.hpp>

#include <iostream>

int main() {
    mnc2::device device;
    std::vector<double> data(64), out;
    for (std::size_t i = 0; i < data.size(); i++) {
        data[i] = 0.5 * static_cast<double>(i);
    }
    mnc2::kernel copy = device.load("_build/copy.idma.dat");
    mnc2::kernel moved = std::move(copy);
    device.send(data, 0, 0x10);
    moved.exec();
    bool same = device.recv<double>(64, 512, 0x1e) == data;
    int code = 0;
    try {
        out = device.recv<double>(64, 512, 0x1e);
    } catch (const mnc2::error &error) {
        code = error.code();
    }
    try {
        device.load("_build/none.idma.dat");
        same = false;
    } catch (const mnc2::error &) {
    }
    mnc2::device other = std::move(device);
    other.assemble("lpassa $subpeid $lm0\n").exec();
    other.wait();
    mnc2_loc_t place = {1, 1, 1, 1, 3};
    same = same && other.read(MNC2_MEM_LM0, place, 0, 1).at(0) == 3;
    std::cout << (same && code == MNC2_ERROR_TIMEOUT ? "PASS" : "FAIL") << "\n";
    return same && code == MNC2_ERROR_TIMEOUT ? 0 : 1;
}
