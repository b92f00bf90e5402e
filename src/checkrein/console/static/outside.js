// A link without this browser's place (in a notification, say) leads back to where it signed in.

try {
  const place = localStorage.getItem("place");
  if (place && /^\/at\/[\w-]+$/.test(place) && !location.pathname.startsWith("/at/") && !location.pathname.startsWith("/signin/")) {
    location.replace(place + (location.pathname === "/" ? "/" : location.pathname) + location.search + location.hash);
  }
} catch { /* a browser that keeps nothing */ }
