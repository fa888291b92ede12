# expect: W0207 line 2 column 3
r 0 000000000 001
