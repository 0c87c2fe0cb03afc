"""Any language model can call your functions."""
