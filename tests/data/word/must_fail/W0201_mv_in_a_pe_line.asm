# expect: W0201 line 2 column 1
j mvp/n64 $p0@0 $d0@0
