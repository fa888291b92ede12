! Host programs in Fortran, by iso_c_binding.
program host
  use, intrinsic :: iso_c_binding
  implicit none
  interface
    function mnc2_open(number) bind(c)
      import; integer(c_int), value :: number; type(c_ptr) :: mnc2_open
    end function
    subroutine mnc2_close(dev) bind(c)
      import; type(c_ptr), value :: dev
    end subroutine
    function mnc2_load_kernel(dev, path) bind(c)
      import; type(c_ptr), value :: dev; character(kind=c_char), intent(in) :: path(*); type(c_ptr) :: mnc2_load_kernel
    end function
    function mnc2_exec_kernel(kernel) bind(c)
      import; type(c_ptr), value :: kernel; integer(c_int) :: mnc2_exec_kernel
    end function
    function mnc2_send(dev, buf, offset, bytes, tag) bind(c)
      import; type(c_ptr), value :: dev; type(c_ptr), value :: buf; integer(c_int64_t), value :: offset
      integer(c_size_t), value :: bytes; integer(c_int), value :: tag; integer(c_int) :: mnc2_send
    end function
    function mnc2_recv(dev, buf, offset, bytes, tag) bind(c)
      import; type(c_ptr), value :: dev; type(c_ptr), value :: buf; integer(c_int64_t), value :: offset
      integer(c_size_t), value :: bytes; integer(c_int), value :: tag; integer(c_int) :: mnc2_recv
    end function
  end interface
  type(c_ptr) :: dev, kernel
  real(c_double), target :: sent(64), received(64)
  integer :: i
  logical :: good
  sent = [(0.25d0 * i, i = 1, 64)]
  dev = mnc2_open(0_c_int)
  kernel = mnc2_load_kernel(dev, "_build/copy.idma.dat" // c_null_char)
  good = mnc2_send(dev, c_loc(sent), 0_c_int64_t, 512_c_size_t, 16_c_int) == 0
  good = good .and. mnc2_exec_kernel(kernel) == 0
  good = good .and. mnc2_recv(dev, c_loc(received), 512_c_int64_t, 512_c_size_t, 30_c_int) == 0
  good = good .and. all(sent == received)
  call mnc2_close(dev)
  if (.not. good) error stop "FAIL"
  print "(a)", "PASS"
end program
