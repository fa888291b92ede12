// Host programs in C++17: mnc2.h with owners that close and free, and errors as exceptions.
#ifndef EMU2_MNC2_HPP
#define EMU2_MNC2_HPP

#include <emu2.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace mnc2 {

// An error with the code of the interface.
class error : public std::runtime_error {
  public:
    error(int code, const std::string &what) : std::runtime_error(what), code_(code) {}
    int code() const noexcept { return code_; }

  private:
    int code_;
};

// Throws unless the code is MNC2_SUCCESS.
inline void check(int code) {
    if (code != MNC2_SUCCESS) {
        throw error(code, std::string(emu2_strerror(code)) + ": " + emu2_last_error());
    }
}

class device;

// A loaded kernel.
class kernel {
  public:
    kernel(kernel &&other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
    kernel &operator=(kernel &&other) noexcept {
        std::swap(handle_, other.handle_);
        return *this;
    }
    kernel(const kernel &) = delete;
    kernel &operator=(const kernel &) = delete;
    ~kernel() { mnc2_free_kernel(handle_); }

    void exec() { check(mnc2_exec_kernel(handle_)); }
    mnc2_kernel_t get() const noexcept { return handle_; }

  private:
    friend class device;
    explicit kernel(mnc2_kernel_t handle) : handle_(handle) {}
    mnc2_kernel_t handle_;
};

// An open device. Its kernels must not outlive it.
class device {
  public:
    explicit device(int number = 0) : handle_(mnc2_open(number)) {
        if (handle_ == nullptr) {
            throw error(MNC2_ERROR_DEVICE, emu2_last_error());
        }
    }
    device(device &&other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
    device &operator=(device &&other) noexcept {
        std::swap(handle_, other.handle_);
        return *this;
    }
    device(const device &) = delete;
    device &operator=(const device &) = delete;
    ~device() { mnc2_close(handle_); }

    mnc2_device_t get() const noexcept { return handle_; }
    std::string backend() const { return mnc2_get_backend_name(handle_); }

    kernel load(const std::string &path) { return owned(mnc2_load_kernel(handle_, path.c_str())); }
    kernel assemble(const std::string &text) { return owned(emu2_load_kernel_text(handle_, text.c_str())); }

    // Copies whole elements to a byte of PDM 0, then signals the tag.
    template <typename T> void send(const std::vector<T> &data, std::uint64_t offset = 0, unsigned tag = 0) {
        check(mnc2_send(handle_, data.data(), offset, data.size() * sizeof(T), tag));
    }
    // Returns elements from a byte of PDM 0 on, once the tag was signalled.
    template <typename T> std::vector<T> recv(std::size_t count, std::uint64_t offset = 0, unsigned tag = 0) {
        std::vector<T> data(count);
        check(mnc2_recv(handle_, data.data(), offset, count * sizeof(T), tag));
        return data;
    }
    void set_endian(int mode) { check(mnc2_set_endian_ctrl(handle_, mode)); }
    void wait() { check(mnc2_wait_idma_idle(handle_)); }
    void reset() { check(mnc2_reset(handle_)); }
    std::vector<std::uint64_t> read(int region, const mnc2_loc_t &place, int addr, int count) {
        std::vector<std::uint64_t> words(static_cast<std::size_t>(count > 0 ? count : 0));
        check(mnc2_debug_read(handle_, region, &place, addr, count, words.data()));
        return words;
    }

  private:
    static kernel owned(mnc2_kernel_t handle) {
        if (handle == nullptr) {
            throw error(MNC2_ERROR_KERNEL, emu2_last_error());
        }
        return kernel(handle);
    }
    mnc2_device_t handle_;
};

} // namespace mnc2

#endif
