"""Parts of MLSDK that its vendor calls experimental."""
