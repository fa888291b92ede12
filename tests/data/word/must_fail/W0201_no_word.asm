# expect: W0201 line 2 column 1
i 
