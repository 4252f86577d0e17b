-- The auction of Vandevoort, Ketsman, Koch and Neven (EDBT 2023, section 2).
CREATE TABLE Buyer (id INT PRIMARY KEY, calls INT NOT NULL);
CREATE TABLE Bids (
  buyerId INT PRIMARY KEY,
  bid INT NOT NULL,
  CONSTRAINT BidsBuyer FOREIGN KEY (buyerId) REFERENCES Buyer (id)
);
CREATE TABLE Log (
  id INT PRIMARY KEY,
  buyerId INT NOT NULL,
  bid INT NOT NULL,
  CONSTRAINT LogBuyer FOREIGN KEY (buyerId) REFERENCES Buyer (id)
);
