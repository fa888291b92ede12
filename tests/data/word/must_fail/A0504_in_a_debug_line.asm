# expect: A0504 line 2 column 14
d set $lm0 1 zz
