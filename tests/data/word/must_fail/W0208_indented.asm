# expect: W0208 line 2 column 5
  c 0 1 2
