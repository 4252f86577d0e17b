-- SmallBank (Alomari, Cahill, Fekete and Röhm, ICDE 2008).
CREATE TABLE Savings (CustomerId INT PRIMARY KEY, Balance INT NOT NULL);
CREATE TABLE Checking (CustomerId INT PRIMARY KEY, Balance INT NOT NULL);
CREATE TABLE Account (
  Name VARCHAR(64) PRIMARY KEY,
  CustomerId INT NOT NULL,
  CONSTRAINT AccountSavings FOREIGN KEY (CustomerId) REFERENCES Savings (CustomerId),
  CONSTRAINT AccountChecking FOREIGN KEY (CustomerId) REFERENCES Checking (CustomerId)
);
