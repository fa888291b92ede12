# expect: W0201 line 2 column 1
fvadd $lr64v $ls64v $ln0v
