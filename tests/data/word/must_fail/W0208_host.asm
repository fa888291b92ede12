# expect: W0208 line 2 column 3
c 0 1 2
