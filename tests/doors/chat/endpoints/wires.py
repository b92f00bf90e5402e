"""A certificate authority nobody knows, and a proxy that only knows CONNECT and plain forwarding."""

import asyncio
import base64
import datetime
import ipaddress
import ssl

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from doors.chat.endpoints.listening import Listening


class Authority:
    """Makes a root and a certificate for 127.0.0.1 and localhost."""

    def __init__(self, folder):
        self.root_key, self.key = (
            ec.generate_private_key(ec.SECP256R1()),
            ec.generate_private_key(ec.SECP256R1()),
        )
        self.root = self._certificate("Our Own Root", self.root_key, root=True)
        leaf = self._certificate("127.0.0.1", self.key, root=False)
        self.file, self.chain = folder / "root.pem", folder / "leaf.pem"
        self.file.write_bytes(self.root.public_bytes(serialization.Encoding.PEM))
        private = self.key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        self.chain.write_bytes(leaf.public_bytes(serialization.Encoding.PEM) + private)

    @property
    def server(self):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.chain)
        return context

    def _certificate(self, name, key, *, root):
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        issuer = subject if root else self.root.subject
        now = datetime.datetime.now(datetime.UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(issuer)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(days=1))
            .not_valid_after(now + datetime.timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=root, path_length=None), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self.root_key.public_key()), critical=False
            )
        )
        if root:
            usage = x509.KeyUsage(False, False, False, False, False, True, True, False, False)
            return builder.add_extension(usage, critical=True).sign(self.root_key, hashes.SHA256())
        names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
        names.append(x509.DNSName("models.example"))
        named = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        return named.sign(self.root_key, hashes.SHA256())


class Proxy(Listening):
    """Looks for every host on this machine, so that a made-up name reaches a test's endpoint."""

    def __init__(self, password="", tls=None):
        self.password, self.tls, self.asked = password, tls, []

    @property
    def address(self):
        return f"127.0.0.1:{self.port}"

    async def talk(self, reader, writer):
        head = await reader.readuntil(b"\r\n\r\n")
        method, target, _ = head.split(b"\r\n")[0].decode().split(" ", 2)
        self.asked.append((method, target))
        if self.password and base64.b64encode(f"me:{self.password}".encode()) not in head:
            writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n")
            return await writer.drain()
        host = target if method == "CONNECT" else target.split("/")[2]
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", int(host.rpartition(":")[2]))
        if method == "CONNECT":
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        else:
            path = "/" + target.split("/", 3)[3]
            far_writer.write(head.replace(target.encode(), path.encode(), 1))
        both = [
            asyncio.ensure_future(_pump(reader, far_writer)),
            asyncio.ensure_future(_pump(far_reader, writer)),
        ]
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in both:
                each.cancel()
            await asyncio.gather(*both, return_exceptions=True)
            far_writer.close()
        return None


async def _pump(reader, writer):
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
