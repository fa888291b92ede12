constant = 3.0
