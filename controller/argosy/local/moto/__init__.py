"""How are moto's services made part of the embedded AWS?"""
