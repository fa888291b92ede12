# expect: W0203 line 2 column 3 among others
i x
d set $lm0 1 zz
x
