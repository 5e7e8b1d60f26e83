"""An authority of the tests' own and certificates that it has signed; only clients that get it trust them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


@dataclass
class Authority:
    """`file`: its certificate, as a file that others trust."""

    folder: Path

    def __post_init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"Authority of {self.folder.name}")])
        made = self._signed(self._name, self._key.public_key(), x509.BasicConstraints(ca=True, path_length=None))
        self.folder.mkdir(parents=True)
        self.file = self.folder / "authority.pem"
        self.file.write_bytes(_pem(made))

    def server(self, address: str = "127.0.0.1", age: timedelta = timedelta()) -> Path:
        """A file with a key and its certificate, which is valid for a day. age: of the certificate."""
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a server")])
        alternative = x509.SubjectAlternativeName([x509.IPAddress(ip_address(address))])
        path = self.folder / "server.pem"
        kept = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        path.write_bytes(kept + _pem(self._signed(name, key.public_key(), alternative, age)))
        return path

    def _signed(
        self,
        subject: x509.Name,
        key: ec.EllipticCurvePublicKey,
        extension: x509.ExtensionType,
        age: timedelta = timedelta(),
    ) -> x509.Certificate:
        since = datetime.now(UTC) - timedelta(hours=1) - age
        made = x509.CertificateBuilder().issuer_name(self._name).subject_name(subject).public_key(key)
        made = made.serial_number(x509.random_serial_number()).add_extension(extension, critical=True)
        made = made.not_valid_before(since).not_valid_after(since + timedelta(days=1))
        return made.sign(self._key, hashes.SHA256())


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)
