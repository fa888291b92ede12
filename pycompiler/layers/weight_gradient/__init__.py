"""MNCoreWeightGradient: the way back of a convolution to its weights, where its tiles lie."""
