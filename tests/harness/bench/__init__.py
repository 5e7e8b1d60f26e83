"""How well do placement, buying and the deadline policy do on recorded data?"""
