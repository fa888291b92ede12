# expect: W0208 line 2 column 1
c 0 1 2
