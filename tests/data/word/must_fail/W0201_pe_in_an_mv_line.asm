# expect: W0201 line 2 column 1
m ladd $lm0 $ln0 $lr0
