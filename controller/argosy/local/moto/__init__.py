"""moto's services as part of the embedded AWS."""
